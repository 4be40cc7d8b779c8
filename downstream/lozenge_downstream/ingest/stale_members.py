"""Stale members of a consumer group: their process is dead, and they keep their partitions until the session ends.

Only this module imports kafka-python: librdkafka cannot remove members of a group.
"""

from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove
from kafka.errors import CoordinatorNotAvailableError, KafkaError

from lozenge.kafka.settings import KafkaSettings
from lozenge.process.logging import logger


def remove_stale_members(kafka: KafkaSettings, group: str, client_id: str) -> int:
    """Removes every member of `group` with this `client_id`; returns how many there were.

    A process calls it at its start if it has the name of one that died, so that the group need not wait for the session
    timeout. If it fails, the group waits. A member that is alive joins again.
    """
    group_id = kafka.topics.prefixed(group)
    try:
        admin = KafkaAdminClient(**kafka.kafka_python())
        try:
            members = admin.describe_groups([group_id])[group_id]["members"]
            stale = [m["member_id"] for m in members if m["client_id"] == client_id]
            if stale:
                admin.remove_group_members(group_id, [MemberToRemove(member_id=id) for id in stale])
            return len(stale)
        finally:
            admin.close()
    except CoordinatorNotAvailableError:
        return 0  # the group has never existed
    except KafkaError as error:
        logger().warning("an earlier process of this name may keep its partitions for some seconds", error=str(error))
        return 0
