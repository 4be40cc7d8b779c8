"""`lozenge stream`: the kinds of events, and how raw records become them."""
