"""What a demo runs more of on request, sinks of this project, and how they are compared with their topics."""
