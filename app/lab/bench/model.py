"""The model of the contender that has one: boosted trees, learnt from made-up payments once a bench."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fraud_filter.errors import FraudFilterError
from lab.harness.embedded_stack import EmbeddedStack
from lab.harness.processes import Child
from lab.harness.programs import environment, verb

_RULES = Path(__file__).parent / "model.yml"
#: Training takes less than a minute on 2 idle cores.
_TRAINING_S = 300


def with_model(stack: EmbeddedStack) -> Mapping[str, Any]:
    """The setting that names rules with a model, which lies beside them in the workspace.

    Raises:
        FraudFilterError: it could not be trained.
    """
    rules = stack.workspace.path / _RULES.name
    if not rules.exists():
        stack.say("training a model of 50 boosted trees, once")
        argv = [*verb("train"), "generated", "--out", str(rules.with_suffix(""))]
        env = {**environment(stack.settings), "JAVA_HOME": str(stack.java_home)}
        with Child("the training", argv, log=stack.workspace.logs / "train.log", env=env) as training:
            if training.wait(_TRAINING_S) != 0:
                raise FraudFilterError("the model could not be trained: " + " ".join(training.tail()[-3:]))
        shutil.copy(_RULES, rules)
    return {"rules": rules}
