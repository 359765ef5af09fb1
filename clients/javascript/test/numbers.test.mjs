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

test("latencies have percentiles by group", async () => {
  const { id } = await postrider.emails.send(newEmail());
  await until(async () => (await postrider.emails.get(id)).deliveredAt, "the delivery");
  const { firstAttempt, outcome, groups } = await postrider.analytics.latency({ by: "stream" });
  assert.ok(firstAttempt.p50 > 0 && outcome.p95 >= outcome.p50 && outcome.within10Minutes <= 1);
  assert.ok(groups.some((one) => one.id === "main" && one.outcome.count > 0));
  assert.equal((await postrider.analytics.latency({ from: "2026-01-01", to: "2026-01-01" })).outcome.p95, null);
});

test("causes of bounces have reasons and hosts", async () => {
  const { id } = await postrider.emails.send(newEmail({ to: "bounced@simulator.example" }));
  await until(async () => (await postrider.emails.get(id)).status === "bounced", "the bounce");
  const { event, reasons, hosts } = await postrider.analytics.bounces({ from: new Date(Date.now() - 86_400_000) });
  assert.equal(event, "bounced");
  const reason = reasons.find((one) => one.reason === "unknown_user");
  assert.ok(reason.share > 0 && reason.sample.code === 550);
  assert.ok(hosts.some((one) => one.name === "simulator.example"));
  assert.deepEqual((await postrider.analytics.bounces({ event: "failed", to: "2026-01-01" })).reasons, []);
});

test("queue statistics are numbers", async () => {
  const stats = await postrider.queue.stats();
  for (const name of ["waiting", "active", "delayed", "completed", "failed", "paused"]) {
    assert.equal(typeof stats[name], "number", name);
  }
});
