import type { List, Paging } from "../listing.js";
import type { IdempotentOptions, RequestOptions, Transport } from "../transport.js";
import type {
  AuditEntry,
  CheckedConfiguration,
  ConfigurationLease,
  CreatedKey,
  Deleted,
  Invitation,
  LeaseRequest,
  ManagedKey,
  ManagedWorkspace,
  Member,
  MemberRole,
  NewKey,
  NewWorkspace,
  Plan,
  RemovedMember,
  TransportStatus,
  WorkspaceUsage,
} from "../types.js";

/**
 * The management API. It requires a management key, or an API key with scope `workspace_admin` for the workspace of
 * the key.
 */
export class Workspaces {
  readonly keys: WorkspaceKeys;
  readonly members: WorkspaceMembers;
  readonly invitations: WorkspaceInvitations;
  readonly audit: WorkspaceAudit;
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.keys = new WorkspaceKeys(transport);
    this.members = new WorkspaceMembers(transport);
    this.invitations = new WorkspaceInvitations(transport);
    this.audit = new WorkspaceAudit(transport);
  }

  create(workspace: NewWorkspace, options?: IdempotentOptions): Promise<ManagedWorkspace> {
    return this.#transport.json({ method: "POST", path: pathOf(), body: workspace, isKeyed: true, options });
  }

  list(paging: Paging = {}, options?: RequestOptions): List<ManagedWorkspace> {
    return this.#transport.list(pathOf(), paging, options);
  }

  get(id: string, options?: RequestOptions): Promise<ManagedWorkspace> {
    return this.#transport.json({ method: "GET", path: pathOf(id), options });
  }

  update(id: string, changes: { name?: string; plan?: Plan }, options?: RequestOptions): Promise<ManagedWorkspace> {
    return this.#transport.json({ method: "PATCH", path: pathOf(id), body: changes, options });
  }

  /** Refuse new emails and hold queued ones. The members see the reason. */
  suspend(id: string, body: { reason: string }, options?: RequestOptions): Promise<ManagedWorkspace> {
    return this.#transport.json({ method: "POST", path: pathOf(id, "suspend"), body, isKeyed: true, options });
  }

  /** End the suspension. Queued emails are sent. */
  resume(id: string, options?: RequestOptions): Promise<ManagedWorkspace> {
    return this.#transport.json({ method: "POST", path: pathOf(id, "resume"), isKeyed: true, options });
  }

  /** Delete a workspace. Until `deletesAt` of the response it can be restored. */
  delete(id: string, options?: RequestOptions): Promise<ManagedWorkspace> {
    return this.#transport.json({ method: "DELETE", path: pathOf(id), options });
  }

  /** Restore a deleted workspace. Queued emails are sent. */
  restore(id: string, options?: RequestOptions): Promise<ManagedWorkspace> {
    return this.#transport.json({ method: "POST", path: pathOf(id, "restore"), isKeyed: true, options });
  }

  usage(id: string, options?: RequestOptions): Promise<WorkspaceUsage> {
    return this.#transport.json({ method: "GET", path: pathOf(id, "usage"), options });
  }

  /** Check a description of a workspace, and change nothing. */
  checkConfiguration(
    configuration: Record<string, unknown>,
    options?: RequestOptions,
  ): Promise<CheckedConfiguration> {
    const path = ["admin", "configuration", "check"];
    return this.#transport.json({ method: "POST", path, body: configuration, isRepeatable: true, options });
  }

  /**
   * Take the lease of a workspace for two minutes, or renew it with the same token, a random text of 22 to 100
   * characters. Without `workspaceId`: of the key's own workspace, or for a management key of the list of workspaces.
   */
  leaseConfiguration(lease: LeaseRequest, options?: RequestOptions): Promise<ConfigurationLease> {
    const path = ["admin", "configuration", "lease"];
    return this.#transport.json({ method: "POST", path, body: lease, isRepeatable: true, options });
  }

  /** End the lease with this token. */
  releaseConfiguration(lease: LeaseRequest, options?: RequestOptions): Promise<ConfigurationLease> {
    const path = ["admin", "configuration", "release"];
    return this.#transport.json({ method: "POST", path, body: lease, isRepeatable: true, options });
  }
}

/** API keys of a workspace. */
export class WorkspaceKeys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Create an API key. Store `key` of the response: it cannot be read again. */
  create(
    workspaceId: string,
    key: NewKey,
    options?: IdempotentOptions,
  ): Promise<CreatedKey> {
    const path = pathOf(workspaceId, "api-keys");
    return this.#transport.json({ method: "POST", path, body: key, isKeyed: true, options });
  }

  list(workspaceId: string, paging: Paging = {}, options?: RequestOptions): List<ManagedKey> {
    return this.#transport.list(pathOf(workspaceId, "api-keys"), paging, options);
  }

  /** Revoke an API key permanently. */
  revoke(workspaceId: string, keyId: string, options?: RequestOptions): Promise<ManagedKey> {
    return this.#transport.json({ method: "DELETE", path: pathOf(workspaceId, "api-keys", keyId), options });
  }
}

/** Members of a workspace, identified by their address. */
export class WorkspaceMembers {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(workspaceId: string, paging: Paging = {}, options?: RequestOptions): List<Member> {
    return this.#transport.list(pathOf(workspaceId, "members"), paging, options);
  }

  update(workspaceId: string, email: string, changes: { role: MemberRole }, options?: RequestOptions): Promise<Member> {
    return this.#transport.json({ method: "PATCH", path: pathOf(workspaceId, "members", email), body: changes, options });
  }

  /** End a membership. API keys stay active: they belong to the workspace. */
  remove(workspaceId: string, email: string, options?: RequestOptions): Promise<RemovedMember> {
    return this.#transport.json({ method: "DELETE", path: pathOf(workspaceId, "members", email), options });
  }
}

/** Invitations that were not accepted yet. */
export class WorkspaceInvitations {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Send an invitation by email. An open invitation of the same address is replaced. */
  create(
    workspaceId: string,
    invitation: { email: string; role?: MemberRole },
    options?: IdempotentOptions,
  ): Promise<Invitation> {
    const path = pathOf(workspaceId, "invitations");
    return this.#transport.json({ method: "POST", path, body: invitation, isKeyed: true, options });
  }

  list(workspaceId: string, paging: Paging = {}, options?: RequestOptions): List<Invitation> {
    return this.#transport.list(pathOf(workspaceId, "invitations"), paging, options);
  }

  /** Delete an invitation. Its link stops working. */
  withdraw(workspaceId: string, invitationId: string, options?: RequestOptions): Promise<Deleted> {
    return this.#transport.json({ method: "DELETE", path: pathOf(workspaceId, "invitations", invitationId), options });
  }
}

/** The audit log of a workspace. */
export class WorkspaceAudit {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** List the actions on a workspace, newest first. */
  list(workspaceId: string, paging: Paging = {}, options?: RequestOptions): List<AuditEntry> {
    return this.#transport.list(pathOf(workspaceId, "audit"), paging, options);
  }
}

/** The operator's transports. They require a management key. */
export class Transports {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** List the transports with their states, in the order in which the operator wrote them. */
  list(paging: Paging = {}, options?: RequestOptions): List<TransportStatus> {
    return this.#transport.list(["admin", "transports"], paging, options);
  }
}

function pathOf(...segments: string[]): string[] {
  return ["admin", "workspaces", ...segments];
}
