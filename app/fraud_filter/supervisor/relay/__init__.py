"""The change from one filter to the next on a checkpoint: a standby's wait, and a handover that it asks for."""
