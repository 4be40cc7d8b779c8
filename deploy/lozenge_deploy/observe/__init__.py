"""Readers for people and Prometheus; they change nothing."""
