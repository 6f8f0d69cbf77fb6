"""A throwaway authority, and certificates it signs for any name."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Authority:
    """Its certificate as a file, and how to sign."""

    file: Path
    folder: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def make(cls, folder: Path) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tests only")])
        made = _certificate(name, name, key.public_key()).add_extension(
            x509.BasicConstraints(True, None), critical=True
        )
        certificate = made.sign(key, hashes.SHA256())
        file = folder / "authority.pem"
        file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return cls(file, folder, certificate, key)

    def for_servers(self, *hosts: str) -> ssl.SSLContext:
        """A context for a server that is all of these hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
        made = _certificate(name, self.certificate.subject, key.public_key())
        names = x509.SubjectAlternativeName([_name(host) for host in hosts])
        certificate = made.add_extension(names, critical=False).sign(self.key, hashes.SHA256())
        file = self.folder / f"{hosts[0].strip('*.')}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def for_clients(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.file))


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
    )


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
