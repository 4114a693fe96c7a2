"""The embedded broker with the secure stack's own settings: logins, TLS, rights; and who comes to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fraud_filter.config import Settings, load
from fraud_filter.home import HOME
from lab.harness.broker import HOST, Broker
from lab.harness.processes import free_ports
from lab.harness.workspace import Workspace


class SecuredBroker(Broker):
    """Beside the listeners of `kafka/secure.properties` it has a plain one, over which the broker is waited for."""

    def __init__(self, workspace: Workspace, secrets: Path, *, java_home: Path, jars: Sequence[Path]) -> None:
        """`secrets`: the directory with the certificates."""
        super().__init__(workspace, java_home=java_home, jars=jars)
        self._secrets = secrets
        self.client, self.admin = (f"{HOST}:{port}" for port in free_ports(2))

    def _configure(self, controller_port: int) -> Path:
        properties = super()._configure(controller_port)
        secured = (HOME / "kafka/secure.properties").read_text().replace("/run/secrets", str(self._secrets))
        listeners = f"CLIENT://{self.client},BROKER://{self.admin}"
        more = {
            "listeners": f"WAIT://{self.address},{listeners},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"WAIT://{self.address},{listeners}",
            "listener.security.protocol.map": "CLIENT:SASL_SSL,BROKER:SSL,WAIT:PLAINTEXT,CONTROLLER:SSL",
        }
        lines = [f"{name}={value}" for name, value in more.items()]
        properties.write_text("\n".join([properties.read_text(), secured, *lines, ""]))
        return properties

    def administrator(self) -> Settings:
        """Known by its certificate."""
        files = {"ca": "kafka-ca.crt", "certificate": "kafka-admin.crt", "key": "kafka-admin.key"}
        paths = {f"kafka_ssl_{name}": str(self._secrets / file) for name, file in files.items()}
        return self._settings(self.admin, kafka_security_protocol="SSL", **paths)

    def user(self, name: str, mechanism: str = "SCRAM-SHA-512") -> Settings:
        """Known by the password in the file of its name."""
        return self._settings(
            self.client,
            kafka_security_protocol="SASL_SSL",
            kafka_sasl_mechanism=mechanism,
            kafka_sasl_username=name,
            kafka_sasl_password_file=str(self._secrets / name),
            kafka_ssl_ca=str(self._secrets / "kafka-ca.crt"),
        )

    def _settings(self, address: str, **more: str) -> Settings:
        return load({"kafka_bootstrap_servers": address, "kafka_timeout_s": "10", **more}, Path("/dev/null"))
