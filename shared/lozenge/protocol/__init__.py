"""What a job and its operators say to each other: plain records with encode and decode."""
