"""What happens next in a job: its loop, its recovery and its partitions."""
