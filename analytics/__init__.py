"""Analytics answers how many emails a workspace sent and how they ended: totals, rates, days, causes of bounces."""
