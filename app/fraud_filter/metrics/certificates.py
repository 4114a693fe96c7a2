"""When certificates end: of files in PEM form, as a metric."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cryptography import x509
from prometheus_client.core import Metric

from fraud_filter.config import Settings
from fraud_filter.metrics import catalogue
from fraud_filter.metrics.server import Registry


def ends(file: Path) -> list[float]:
    """The end of each certificate of a file, in seconds since 1970; keys beside them are passed over.

    Raises:
        OSError: the file can't be read.
        ValueError: it holds no certificate.
    """
    return [found.not_valid_after_utc.timestamp() for found in x509.load_pem_x509_certificates(file.read_bytes())]


class CertificateMetrics:
    """The ends of the certificates that this program is given, read at each scrape: files may be renewed below it.

    Of our own certificate the first end of its chain counts; of authorities the last one: while they are exchanged the
    file holds the old and the new. A file that can't be read has no sample.
    """

    def __init__(self, registry: Registry, settings: Settings) -> None:
        """No sample where Kafka is reached without TLS."""
        tls = settings.kafka_security_protocol.endswith("SSL")
        self._files = [
            (Path(name), pick)
            for name, pick in ((settings.kafka_ssl_ca, max), (settings.kafka_ssl_certificate, min))
            if tls and name
        ]
        registry.register(self)  # a collector by its `collect`

    def collect(self) -> Iterator[Metric]:
        """Called by the registry at each scrape."""
        yield catalogue.CERTIFICATE_EXPIRY.collected(self._ends())

    def _ends(self) -> Iterator[tuple[tuple[str], float]]:
        for file, pick in self._files:
            with suppress(OSError, ValueError):
                yield (file.name,), pick(ends(file))
