"""A word that Slurm would ignore is named, with the one that was meant."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.conf import keys as conf_keys
from ansible.module_utils.slurmstead.conf import tokens as conf_tokens


def said(text: str, version: str) -> list[str]:
    return [str(finding) for finding in conf_tokens.unknown_words({"slurm.conf": text}, version)]


@pytest.mark.parametrize(
    ("text", "version", "words"),
    [
        ("SlurmctldParameters=enable_configles", "22.05.8", "did you mean enable_configless?"),
        ("SchedulerParameters=bf_continue,bf_intervall=30", "24.11.5", "did you mean bf_interval?"),
        ("SlurmdParameters=allow_ecores", "22.05.8", "only 23.11, 24.11 know it"),
        ("SlurmctldParameters=cloud_reg_addrs", "24.11.5", "only 21.08, 22.05 know it"),
        ("LaunchParameters=qqq", "24.11.5", "see slurm.conf(5)"),
    ],
)
def test_a_word_that_would_be_ignored_is_named(text: str, version: str, words: str) -> None:
    (line,) = said(text, version)

    assert line.startswith(f"slurm.conf line 1: `{text}`: ")
    assert words in line


@pytest.mark.parametrize("version", conf_keys.VERSIONS)
@pytest.mark.parametrize(
    "text",
    [
        "SchedulerParameters=batch_sched_delay=0,sched_interval=1,BF_Continue, bf_window=5",
        "SlurmctldParameters=enable_configless",
        "LaunchParameters=use_interactive_step",
        "DebugFlags=Anything",
    ],
)
def test_a_known_word_is_none(text: str, version: str) -> None:
    assert said(text, version) == []


def test_words_of_a_version_between_the_supported_ones_are_known_to_it() -> None:
    words = "SlurmctldParameters=enable_stepmgr,max_powered_nodes=4\nSlurmdParameters=contain_spank"

    assert said(words, "24.05.4") == []
    assert len(said(words, "23.11.4")) == 3


@pytest.mark.parametrize("version", conf_keys.VERSIONS)
def test_the_table_is_about_keys_that_slurm_has(version: str) -> None:
    table = conf_tokens.words(version)

    assert [key for key in table if key not in conf_keys.keys(conf_keys.SLURM_CONF)] == []
    assert all(table[key] for key in table)
