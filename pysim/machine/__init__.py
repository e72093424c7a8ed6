"""The machine: devices, the configuration of a run, mechanisms, and devices made from measurements."""
