"""The Compose stack, brought up, looked at and moved between modes. Needs a Docker Engine."""
