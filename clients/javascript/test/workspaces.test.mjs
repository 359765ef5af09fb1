import assert from "node:assert/strict";
import { test } from "node:test";
import { NotFoundError, Postrider } from "postrider";
import { postrider, someone } from "./service.mjs";

const { workspaces } = new Postrider(process.env.MANAGEMENT_KEY);

test("the workspaces of a management key are managed", async () => {
  const { id } = await workspaces.create({ name: "Shop", plan: "pro", ownerEmail: someone() });
  assert.equal((await workspaces.update(id, { name: "Store" })).name, "Store");
  assert.ok((await workspaces.suspend(id, { reason: "The invoice is overdue." })).suspendedAt);
  assert.equal((await workspaces.resume(id)).suspendedAt, null);
  assert.ok((await workspaces.delete(id)).deletesAt);
  assert.equal((await workspaces.restore(id)).deletesAt, null);
  const listed = [];
  for await (const workspace of workspaces.list({ limit: 1 })) listed.push(workspace.id);
  assert.ok(listed.includes((await workspaces.get(id)).id));
  assert.equal((await workspaces.usage(id)).quota.used, 0);
  for await (const entry of workspaces.audit.list(id)) assert.equal(entry.actorKind, "key");
});

test("keys of a managed workspace are created and revoked", async () => {
  const { id } = await workspaces.create({ name: "Keys" });
  const key = await workspaces.keys.create(id, { name: "Website", scope: "full_access", expiresAt: null });
  assert.equal((await new Postrider(key.key).me()).workspace.id, id);
  assert.ok((await workspaces.keys.revoke(id, key.id)).revokedAt);
  assert.deepEqual((await workspaces.keys.list(id)).data.map((one) => one.id), [key.id]);
});

test("a key of the caller makes a repeat safe", async () => {
  const idempotencyKey = crypto.randomUUID();
  const repeat = () => workspaces.create({ name: "Repeated" }, { idempotencyKey });
  assert.deepEqual(await repeat(), await repeat());
});

test("members and invitations of a managed workspace are listed, changed and removed", async () => {
  const { id } = (await postrider.me()).workspace;
  const invitation = await workspaces.invitations.create(id, { email: someone(), role: "owner" });
  assert.ok((await workspaces.invitations.list(id, { limit: 100 })).data.some((one) => one.id === invitation.id));
  assert.equal((await workspaces.invitations.withdraw(id, invitation.id)).deleted, true);
  const [member] = (await workspaces.members.list(id)).data;
  assert.deepEqual(await workspaces.members.update(id, member.email, { role: "owner" }), member);
  await assert.rejects(workspaces.members.remove(id, "nobody@example.com"), NotFoundError);
});
