"""Processes of this machine, their folders and their logs."""
