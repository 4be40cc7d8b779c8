"""Members of a consumer group whose process is dead: they hold their partitions until the group misses them."""

from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove
from kafka.errors import CoordinatorNotAvailableError, KafkaError

from lozenge.kafka.settings import KafkaSettings
from lozenge.process.logging import logger


def remove_stale(kafka: KafkaSettings, group: str, client_id: str) -> int:
    """Makes every member of `group` with this `client_id` leave it; how many those were.

    For the start of a process that has the name of one that died: the group then need not wait for a session to time
    out. Where that fails the group waits; a member that lives after all joins again.
    """
    group_id = kafka.topics.prefixed(group)
    try:
        admin = KafkaAdminClient(**kafka.kafka_python())
        try:
            members = admin.describe_groups([group_id])[group_id]["members"]
            dead = [m["member_id"] for m in members if m["client_id"] == client_id]
            if dead:
                admin.remove_group_members(group_id, [MemberToRemove(member_id=id) for id in dead])
            return len(dead)
        finally:
            admin.close()
    except CoordinatorNotAvailableError:
        return 0  # there has never been a group
    except KafkaError as error:
        logger().warning("an earlier process of this name may hold its partitions for some seconds", error=str(error))
        return 0
