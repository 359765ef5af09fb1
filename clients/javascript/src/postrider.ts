import { Alerts } from "./resources/alerts.js";
import { Domains } from "./resources/domains.js";
import { Emails } from "./resources/emails.js";
import { Erasures } from "./resources/erasures.js";
import { Events } from "./resources/events.js";
import { Inbound } from "./resources/inbound.js";
import { AnalyticsResource, Queue } from "./resources/numbers.js";
import { Streams } from "./resources/streams.js";
import { SubjectExports } from "./resources/subject_exports.js";
import { Suppressions } from "./resources/suppressions.js";
import { Templates } from "./resources/templates.js";
import { Webhooks } from "./resources/webhooks.js";
import { Receivers, Transports, Workspaces } from "./resources/workspaces.js";
import { type PostriderOptions, type RequestOptions, Transport } from "./transport.js";
import type { Me } from "./types.js";

/**
 * Client for the API of one workspace. `apiKey` defaults to the environment variable POSTRIDER_API_KEY. A management
 * key is for `workspaces`, `transports` and `receivers` only.
 */
export class Postrider {
  readonly emails: Emails;
  readonly templates: Templates;
  readonly streams: Streams;
  readonly suppressions: Suppressions;
  readonly domains: Domains;
  readonly alerts: Alerts;
  readonly erasures: Erasures;
  readonly subjectExports: SubjectExports;
  readonly webhooks: Webhooks;
  readonly events: Events;
  readonly inbound: Inbound;
  readonly analytics: AnalyticsResource;
  readonly queue: Queue;
  readonly workspaces: Workspaces;
  readonly transports: Transports;
  readonly receivers: Receivers;
  readonly #transport: Transport;

  constructor(apiKey?: string, options: PostriderOptions = {}) {
    this.#transport = new Transport(apiKey, options);
    this.emails = new Emails(this.#transport);
    this.templates = new Templates(this.#transport);
    this.streams = new Streams(this.#transport);
    this.suppressions = new Suppressions(this.#transport);
    this.domains = new Domains(this.#transport);
    this.alerts = new Alerts(this.#transport);
    this.erasures = new Erasures(this.#transport);
    this.subjectExports = new SubjectExports(this.#transport);
    this.webhooks = new Webhooks(this.#transport);
    this.events = new Events(this.#transport);
    this.inbound = new Inbound(this.#transport);
    this.analytics = new AnalyticsResource(this.#transport);
    this.queue = new Queue(this.#transport);
    this.workspaces = new Workspaces(this.#transport);
    this.transports = new Transports(this.#transport);
    this.receivers = new Receivers(this.#transport);
  }

  /** Return the workspace, the API key in use and the remaining quota. */
  me(options?: RequestOptions): Promise<Me> {
    return this.#transport.json({ method: "GET", path: ["me"], options });
  }
}
