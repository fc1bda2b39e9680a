"""A volume's counters in the words of the field: CloudWatch, the NVMe log page of an EBS volume, OpenMetrics.

Nothing here measures: every figure is a difference of cumulative counters that a run recorded or a volume's daemon keeps.
"""
