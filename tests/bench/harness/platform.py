"""The topics of the platform that this benchmark process measures, as its environment declares them."""

from lozenge.kafka.settings import KafkaSettings

TOPICS = KafkaSettings.load().topics
