"""The records about releases of streams, and what they say together of one stream."""

import msgspec
import pytest

from lozenge.protocol.stream_releases import (
    FOLDER,
    StreamDeployment,
    StreamRelease,
    StreamReport,
    StreamRow,
    decode,
    key_of,
    record,
    state_of,
    states_of,
)

RELEASE = StreamRelease("auth", 3, {"stream.toml": "x"}, "ann", "why")
RAN_BEFORE = StreamRelease("auth", FOLDER, {"stream.toml": "w"}, "upstream")
DEPLOYMENT = StreamDeployment("auth", "rev-2", 3, fallback=2)
TAKEN, REFUSED = StreamReport("auth", "rev-2", 3), StreamReport("auth", "rev-2", 3, ("wallet.toml: not TOML",))


@pytest.mark.parametrize(
    ("row", "key"),
    [
        (RELEASE, "auth/r3"),
        (RAN_BEFORE, "auth/folder"),
        (DEPLOYMENT, "auth"),
        (TAKEN, "auth/report"),
        (REFUSED, "auth/report"),
    ],
)
def test_a_row_is_read_as_it_was_written(row: StreamRow, key: str) -> None:
    written = record("topic", row)
    assert (written.key, key_of(row)) == (key.encode(), key)
    assert decode(written.key or b"", written.value or b"") == row


@pytest.mark.parametrize(
    ("key", "row"),
    [
        (b"auth/r4", RELEASE),
        (b"login", DEPLOYMENT),
        (b"auth/r03", RELEASE),
        (b"auth/r0", RAN_BEFORE),
        (b"auth/folder", RELEASE),
        (b"auth/x", RELEASE),
        (b"Auth", DEPLOYMENT),
        (b"auth/r3", DEPLOYMENT),
        (b"auth/r3", msgspec.structs.replace(RELEASE, files={"../x": ""})),
    ],
)
def test_any_other_record_is_refused(key: bytes, row: StreamRow) -> None:
    with pytest.raises(ValueError):
        decode(key, msgspec.json.encode(row))


def rows(*found: StreamRow) -> dict[str, StreamRow]:
    return {key_of(row): row for row in found}


def test_without_a_request_the_folder_is_to_run() -> None:
    state = state_of("auth", rows(RELEASE))
    assert (state.to_run, state.is_proved, state.next_number()) == (FOLDER, True, 4)
    assert state_of("auth", {}).next_number() == 1


@pytest.mark.parametrize(
    ("answer", "to_run", "is_proved"),
    [
        (None, 3, False),
        (TAKEN, 3, True),
        (REFUSED, 2, True),
        (msgspec.structs.replace(REFUSED, revision="rev-1"), 3, False),
    ],
)
def test_a_refused_release_is_not_to_run_and_an_answer_is_to_one_request(
    answer: StreamReport | None, to_run: int, is_proved: bool
) -> None:
    others = StreamDeployment("login", "rev-9", 7), StreamRelease("login", 7, {})
    found = rows(RELEASE, DEPLOYMENT, *others) | (rows(answer) if answer else {})
    state = state_of("auth", found)
    assert (state.to_run, state.is_proved) == (to_run, is_proved)
    assert dict(state.releases) == {3: RELEASE}


def test_the_folder_that_ran_before_the_first_request_is_kept_and_no_release() -> None:
    before = state_of("auth", rows(RAN_BEFORE))
    assert before.kept(FOLDER) is None, "the next start reads the folder again"
    assert (before.running, before.next_number(), dict(before.releases)) == (RAN_BEFORE, 1, {})
    first = StreamDeployment("auth", "rev-1", 1, fallback=FOLDER)
    deployed = state_of("auth", rows(RAN_BEFORE, first, StreamRelease("auth", 1, {"stream.toml": "x"})))
    assert deployed.kept(FOLDER) == RAN_BEFORE
    assert deployed.running == deployed.kept(1) == deployed.releases[1]
    back = state_of("auth", rows(RAN_BEFORE, StreamDeployment("auth", "rev-2", FOLDER)))
    assert back.running == RAN_BEFORE


def test_the_id_of_a_release_is_its_name_and_the_digest_of_its_files() -> None:
    other = msgspec.structs.replace(RELEASE, reason="another", by="bob")
    assert RELEASE.id.name == "r3"
    assert other.id == RELEASE.id
    assert msgspec.structs.replace(RELEASE, files={}).id != RELEASE.id


def test_each_stream_has_a_state_of_its_own_rows() -> None:
    other = StreamRelease("login", 1, {"stream.toml": "y"})
    auth, login = states_of({key_of(row): row for row in (RELEASE, DEPLOYMENT, REFUSED, other)})
    assert (auth.stream, auth.to_run, auth.releases) == ("auth", 2, {3: RELEASE})
    assert (login.stream, login.to_run, login.releases) == ("login", FOLDER, {1: other})
    assert states_of({}) == []
