import assert from "node:assert/strict";
import { test } from "node:test";
import { newEmail, postrider, until } from "./service.mjs";

test("analytics count sent emails, in total and by day", async () => {
  const before = await postrider.analytics.get();
  const { id } = await postrider.emails.send(newEmail());
  await until(async () => (await postrider.emails.get(id)).deliveredAt, "the delivery");
  const { total, breakdown, rates } = await postrider.analytics.get({ from: new Date(Date.now() - 86_400_000), to: new Date() });
  assert.ok(total > before.total && breakdown.delivered > before.breakdown.delivered);
  assert.ok(rates.deliveryRate > 0 && rates.deliveryRate <= 1);
  const days = await postrider.analytics.daily(3);
  assert.equal(days.length, 3);
  assert.equal(days[2].date, new Date().toISOString().slice(0, 10));
  assert.equal((await postrider.analytics.daily()).length, 14);
});

test("queue statistics are numbers", async () => {
  const stats = await postrider.queue.stats();
  for (const name of ["waiting", "active", "delayed", "completed", "failed", "paused"]) {
    assert.equal(typeof stats[name], "number", name);
  }
});
