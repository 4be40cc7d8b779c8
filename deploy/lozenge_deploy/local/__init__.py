"""The platform on one machine: broker, topics, stages, agent."""
