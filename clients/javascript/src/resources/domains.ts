import type { List, Paging } from "../listing.js";
import type { RequestOptions, Transport } from "../transport.js";
import type { Deleted, Domain } from "../types.js";

export class Domains {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Register a domain to send from; the answer has the DNS records to publish. */
  create(name: string, options?: RequestOptions): Promise<Domain> {
    return this.#transport.json({ method: "POST", path: ["domains"], body: { name }, options });
  }

  list(paging: Paging = {}, options?: RequestOptions): List<Domain> {
    return this.#transport.list(["domains"], paging, options);
  }

  get(id: string, options?: RequestOptions): Promise<Domain> {
    return this.#transport.json({ method: "GET", path: ["domains", id], options });
  }

  /** Look at the DNS now; the answer says what was found and what to change. */
  verify(id: string, options?: RequestOptions): Promise<Domain> {
    return this.#transport.json({ method: "POST", path: ["domains", id, "verify"], isRepeatable: true, options });
  }

  /** Make a new DKIM key, unless one waits to be seen in the DNS; the answer has the record to publish. */
  rotateDkim(id: string, options?: RequestOptions): Promise<Domain> {
    return this.#transport.json({ method: "POST", path: ["domains", id, "rotate-dkim"], isRepeatable: true, options });
  }

  delete(id: string, options?: RequestOptions): Promise<Deleted> {
    return this.#transport.json({ method: "DELETE", path: ["domains", id], options });
  }
}
