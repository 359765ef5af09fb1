"""The canary: an email that the installation sends itself to see that it arrives (docs/decisions/0382)."""
