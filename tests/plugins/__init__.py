"""Pytest plugins of this suite; the Makefile loads them with `-p`, in every process of a run."""
