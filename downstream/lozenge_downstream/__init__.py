"""The notifier: reads alerts, groups them into cases, and notifies Kafka and channels."""
