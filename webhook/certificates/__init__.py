"""The webhook's self-made certificate, on which the replicas agree and which they renew without a failed request.

    rotation     the loop: read, renew, publish, serve
    secret       the Secret on which the replicas agree
    ca_bundle    the CAs that the API server trusts
    pair         a CA and the certificate that it signed
    issuer       the program that makes a pair

A pair is stored in the Secret only after its CA has been published, so that a replica may serve a pair that it reads at
once.
"""

__all__ = ["pair", "rotation"]
