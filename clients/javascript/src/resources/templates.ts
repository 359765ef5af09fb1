import type { List, Paging } from "../listing.js";
import type { RequestOptions, Transport } from "../transport.js";
import type { Data, Deleted, Preview, Template, TemplateFields, TemplateItem } from "../types.js";

export class Templates {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  create(template: TemplateFields, options?: RequestOptions): Promise<Template> {
    return this.#transport.json({ method: "POST", path: ["templates"], body: template, options });
  }

  list(paging: Paging = {}, options?: RequestOptions): List<TemplateItem> {
    return this.#transport.list(["templates"], paging, options);
  }

  get(id: string, options?: RequestOptions): Promise<Template> {
    return this.#transport.json({ method: "GET", path: ["templates", id], options });
  }

  /** Update the given fields. Emails accepted before the change keep the old content. */
  update(id: string, changes: Partial<TemplateFields>, options?: RequestOptions): Promise<Template> {
    return this.#transport.json({ method: "PATCH", path: ["templates", id], body: changes, options });
  }

  delete(id: string, options?: RequestOptions): Promise<Deleted> {
    return this.#transport.json({ method: "DELETE", path: ["templates", id], options });
  }

  /** Render the template with the given data, without sending. */
  preview(id: string, data: Data = {}, options?: RequestOptions): Promise<Preview> {
    const path = ["templates", id, "preview"];
    return this.#transport.json({ method: "POST", path, body: { data }, isRepeatable: true, options });
  }
}
