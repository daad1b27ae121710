"""How good an explanation is: functions over a classifier and an Explanation."""
