"""Processor time of an RSA-2048 signature, on all cores at the same time."""

import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256


def signature_seconds(*, seconds: float = 1.0) -> float:
    cores = os.cpu_count() or 1
    with ProcessPoolExecutor(cores) as pool:
        return statistics.mean(pool.map(_sign_for, [seconds] * cores))


def _sign_for(seconds: float) -> float:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    count, used, started = 0, time.process_time(), time.perf_counter()
    while time.perf_counter() - started < seconds:
        key.sign(b"header", PKCS1v15(), SHA256())
        count += 1
    return (time.process_time() - used) / count
