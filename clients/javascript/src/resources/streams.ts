import type { List, Paging } from "../listing.js";
import type { RequestOptions, Transport } from "../transport.js";
import type { NewStream, Stream, StreamFields } from "../types.js";

export class Streams {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Create a kind of email with its own unsubscribes and complaints. Emails name it as `stream`. */
  create(stream: NewStream, options?: RequestOptions): Promise<Stream> {
    return this.#transport.json({ method: "POST", path: ["streams"], body: stream, options });
  }

  /** Return `main`, which every workspace has, then the others, oldest first. */
  list(paging: Paging = {}, options?: RequestOptions): List<Stream> {
    return this.#transport.list(["streams"], paging, options);
  }

  get(id: string, options?: RequestOptions): Promise<Stream> {
    return this.#transport.json({ method: "GET", path: ["streams", id], options });
  }

  /** Update the given fields. Emails accepted before the change keep their tracking and priority. */
  update(id: string, changes: Partial<StreamFields>, options?: RequestOptions): Promise<Stream> {
    return this.#transport.json({ method: "PATCH", path: ["streams", id], body: changes, options });
  }

  /** Stop accepting emails of a stream. Emails that it has accepted are sent. */
  archive(id: string, options?: RequestOptions): Promise<Stream> {
    return this.#transport.json({ method: "POST", path: ["streams", id, "archive"], isRepeatable: true, options });
  }

  unarchive(id: string, options?: RequestOptions): Promise<Stream> {
    return this.#transport.json({ method: "POST", path: ["streams", id, "unarchive"], isRepeatable: true, options });
  }
}
