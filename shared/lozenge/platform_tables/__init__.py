"""Tables of the platform: reference data of a database or a lake, as the folders of a project declare it."""
