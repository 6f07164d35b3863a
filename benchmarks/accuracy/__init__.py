"""Every member, rule, fusion and rival on 34 data sets."""
