import type { List, Paging } from "../listing.js";
import type { RequestOptions, Transport } from "../transport.js";
import type { Deleted, Domain, DomainChanges } from "../types.js";

export class Domains {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Register a sending domain. The response has the DNS records to publish. */
  create(name: string, options?: RequestOptions): Promise<Domain> {
    return this.#transport.json({ method: "POST", path: ["domains"], body: { name }, options });
  }

  list(paging: Paging = {}, options?: RequestOptions): List<Domain> {
    return this.#transport.list(["domains"], paging, options);
  }

  get(id: string, options?: RequestOptions): Promise<Domain> {
    return this.#transport.json({ method: "GET", path: ["domains", id], options });
  }

  /** Change settings: TLS, what is tracked, and the host of the links in emails. */
  update(id: string, changes: DomainChanges, options?: RequestOptions): Promise<Domain> {
    return this.#transport.json({ method: "PATCH", path: ["domains", id], body: changes, options });
  }

  /** Check the DNS records now. The response has the result and the required changes. */
  verify(id: string, options?: RequestOptions): Promise<Domain> {
    return this.#transport.json({ method: "POST", path: ["domains", id, "verify"], isRepeatable: true, options });
  }

  /** Create a new DKIM key, unless an earlier one is not in the DNS yet. The response has its record. */
  rotateDkim(id: string, options?: RequestOptions): Promise<Domain> {
    return this.#transport.json({ method: "POST", path: ["domains", id, "rotate-dkim"], isRepeatable: true, options });
  }

  delete(id: string, options?: RequestOptions): Promise<Deleted> {
    return this.#transport.json({ method: "DELETE", path: ["domains", id], options });
  }
}
