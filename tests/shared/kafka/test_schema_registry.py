"""Where a schema registry is, from the environment."""

import pytest

from lozenge.errors import ConfigError
from lozenge.kafka.schema_registry import SchemaRegistrySettings


@pytest.mark.parametrize("url", ["", "http://registry:8080/apis/ccompat/v7", "https://registry"])
def test_a_registry_is_an_address_or_none(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", url)
    assert SchemaRegistrySettings.load().url == url


@pytest.mark.parametrize("url", ["registry:8080", "nonsense", "http://", "file:///tmp/schemas"])
def test_an_address_that_is_no_url_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", url)
    with pytest.raises(ConfigError, match="SCHEMA_REGISTRY_URL: is no http or https URL"):
        SchemaRegistrySettings.load()
