import { Domains } from "./resources/domains.js";
import { Emails } from "./resources/emails.js";
import { AnalyticsResource, Queue } from "./resources/numbers.js";
import { Suppressions } from "./resources/suppressions.js";
import { Templates } from "./resources/templates.js";
import { Webhooks } from "./resources/webhooks.js";
import { type PostriderOptions, type RequestOptions, Transport } from "./transport.js";
import type { Me } from "./types.js";

/** Client for the API of one workspace. `apiKey` defaults to the environment variable POSTRIDER_API_KEY. */
export class Postrider {
  readonly emails: Emails;
  readonly templates: Templates;
  readonly suppressions: Suppressions;
  readonly domains: Domains;
  readonly webhooks: Webhooks;
  readonly analytics: AnalyticsResource;
  readonly queue: Queue;
  readonly #transport: Transport;

  constructor(apiKey?: string, options: PostriderOptions = {}) {
    this.#transport = new Transport(apiKey, options);
    this.emails = new Emails(this.#transport);
    this.templates = new Templates(this.#transport);
    this.suppressions = new Suppressions(this.#transport);
    this.domains = new Domains(this.#transport);
    this.webhooks = new Webhooks(this.#transport);
    this.analytics = new AnalyticsResource(this.#transport);
    this.queue = new Queue(this.#transport);
  }

  /** Return the workspace, the API key in use and the remaining quota. */
  me(options?: RequestOptions): Promise<Me> {
    return this.#transport.json({ method: "GET", path: ["me"], options });
  }
}
