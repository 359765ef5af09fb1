import type { List, Paging } from "../listing.js";
import type { Query, RequestOptions, Transport } from "../transport.js";
import type {
  Deleted,
  InboundSettings,
  NewRoute,
  ReceivedEmail,
  Forwarded,
  ReceivedFilters,
  ReceivedItem,
  Redelivered,
  Reread,
  Route,
  RouteMatch,
  SenderBlock,
  Simulation,
  UnblockedSender,
} from "../types.js";

/** Received emails, the routes of their addresses, and blocked senders. */
export class Inbound {
  readonly emails: ReceivedEmails;
  readonly routes: Routes;
  readonly blocks: SenderBlocks;
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.emails = new ReceivedEmails(transport);
    this.routes = new Routes(transport);
    this.blocks = new SenderBlocks(transport);
  }

  /** Return the workspace's address without any DNS, the hosts for MX records, and the use of its storage. */
  get(options?: RequestOptions): Promise<InboundSettings> {
    return this.#transport.json({ method: "GET", path: ["inbound"], options });
  }
}

/** Received emails. Their content was written by others: check `authentication` before acting on it. */
export class ReceivedEmails {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Return matching emails, newest first, without text, HTML and headers. */
  list(filters: ReceivedFilters & Paging = {}, options?: RequestOptions): List<ReceivedItem> {
    const { test, ...others } = filters;
    const query: Query = { ...others, test: test === undefined ? undefined : String(test) };
    return this.#transport.list(pathOf(), query, options);
  }

  get(id: string, options?: RequestOptions): Promise<ReceivedEmail> {
    return this.#transport.json({ method: "GET", path: pathOf(id), options });
  }

  /** Return the message as it was received, with Received and Authentication-Results of the service in front. */
  raw(id: string, options?: RequestOptions): Promise<Uint8Array> {
    return this.#transport.bytes({ method: "GET", path: pathOf(id, "raw"), options });
  }

  /** Return the decoded bytes of an attachment. */
  attachment(id: string, attachmentId: string, options?: RequestOptions): Promise<Uint8Array> {
    return this.#transport.bytes({ method: "GET", path: pathOf(id, "attachments", attachmentId), options });
  }

  /** Publish a blocked email. Throws NotBlockedError for another one. */
  bypass(id: string, options?: RequestOptions): Promise<ReceivedEmail> {
    return this.#transport.json({ method: "POST", path: pathOf(id, "bypass"), options });
  }

  /** Send an email with this one attached; `forward_not_confirmed` until the address has confirmed it. */
  forward(id: string, body: { to: string }, options?: RequestOptions): Promise<Forwarded> {
    return this.#transport.json({ method: "POST", path: pathOf(id, "forward"), body, options });
  }

  /** Post the event of an email again: to the webhooks that got it, or to those of `webhookIds`. */
  redeliver(id: string, body: { webhookIds?: string[] } = {}, options?: RequestOptions): Promise<Redelivered> {
    return this.#transport.json({ method: "POST", path: pathOf(id, "redeliver"), body, options });
  }

  /**
   * Queue the message of an email that could not be read to be read again; its status changes if that succeeds. Throws
   * NotUnreadableError for another email, and RereadTooSoonError within an hour after it was read again.
   */
  reread(id: string, options?: RequestOptions): Promise<Reread> {
    return this.#transport.json({ method: "POST", path: pathOf(id, "reread"), options });
  }

  delete(id: string, options?: RequestOptions): Promise<Deleted> {
    return this.#transport.json({ method: "DELETE", path: pathOf(id), options });
  }

  /**
   * Store a message as if a mail server had delivered it. Requires a test key; no mail server is needed. The email is
   * read within a second: until then its status is `stored`. Throws RecipientRefusedError if no route accepts it.
   */
  simulate(message: Simulation, options?: RequestOptions): Promise<ReceivedEmail> {
    return this.#transport.json({ method: "POST", path: pathOf(), body: message, options });
  }
}

/** Rules for recipient addresses: of those that match, the first decides. */
export class Routes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  create(route: NewRoute, options?: RequestOptions): Promise<Route> {
    return this.#transport.json({ method: "POST", path: ["inbound", "routes"], body: route, options });
  }

  /** Return the routes in the order in which they are tried. */
  list(filters: { domain?: string } & Paging = {}, options?: RequestOptions): List<Route> {
    return this.#transport.list(["inbound", "routes"], filters, options);
  }

  get(id: string, options?: RequestOptions): Promise<Route> {
    return this.#transport.json({ method: "GET", path: ["inbound", "routes", id], options });
  }

  update(id: string, changes: Partial<NewRoute>, options?: RequestOptions): Promise<Route> {
    return this.#transport.json({ method: "PATCH", path: ["inbound", "routes", id], body: changes, options });
  }

  delete(id: string, options?: RequestOptions): Promise<Deleted> {
    return this.#transport.json({ method: "DELETE", path: ["inbound", "routes", id], options });
  }

  /** Return the route that decides about an address, and the reply of the mail server to it. */
  match(recipient: string, options?: RequestOptions): Promise<RouteMatch> {
    const path = ["inbound", "routes", "match"];
    return this.#transport.json({ method: "POST", path, body: { recipient }, isRepeatable: true, options });
  }
}

/** Senders from which the workspace receives nothing. */
export class SenderBlocks {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Block an address, or a domain with all of its addresses. A blocked one stays so. */
  create(sender: string, options?: RequestOptions): Promise<SenderBlock> {
    const path = ["inbound", "blocks"];
    return this.#transport.json({ method: "POST", path, body: { sender }, isRepeatable: true, options });
  }

  list(paging: Paging = {}, options?: RequestOptions): List<SenderBlock> {
    return this.#transport.list(["inbound", "blocks"], paging, options);
  }

  delete(id: string, options?: RequestOptions): Promise<UnblockedSender> {
    return this.#transport.json({ method: "DELETE", path: ["inbound", "blocks", id], options });
  }
}

function pathOf(...segments: string[]): string[] {
  return ["inbound", "emails", ...segments];
}
