"""The settings: what there is, what each may be, and where they are read from."""

from fraud_filter.config.kinds import ModeName, SinkName, SourceKind, duration_s
from fraud_filter.config.naming import env_name, named, option_name, refused
from fraud_filter.config.outputs import OUTPUT_SETTINGS, output_topics
from fraud_filter.config.reading import GONE, check_env_file, default_env_file, load
from fraud_filter.config.settings import ENV_PREFIX, Settings, setting_groups

__all__ = [
    "ENV_PREFIX",
    "GONE",
    "OUTPUT_SETTINGS",
    "ModeName",
    "Settings",
    "SinkName",
    "SourceKind",
    "check_env_file",
    "default_env_file",
    "duration_s",
    "env_name",
    "load",
    "named",
    "option_name",
    "output_topics",
    "refused",
    "setting_groups",
]
