import type { List, Paging } from "../listing.js";
import type { RequestOptions, Transport } from "../transport.js";
import type {
  CreatedWebhook,
  Deleted,
  Webhook,
  WebhookDelivery,
  WebhookDeliveryDetail,
  ReceivedEvent,
  WebhookEvent,
  WebhookFormat,
  WebhookKind,
} from "../types.js";
import { type HeaderSource, type RawBody, type VerifyOptions, verifyWebhook } from "../webhook-signatures.js";

export interface WebhookFields {
  url: string;
  events: WebhookKind[];
  /** Ids of streams; events about emails of others are not delivered. Without them, all are. */
  streams?: string[];
  format?: WebhookFormat;
  /** Further headers of the requests, such as Authorization. A value as it is shown keeps the present one. */
  headers?: Record<string, string>;
}

export interface DeliveryFilters extends Paging {
  status?: string;
  event?: WebhookKind;
}

export class Webhooks {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Create a webhook. Store the secret of the response: it cannot be read again. */
  create(webhook: WebhookFields, options?: RequestOptions): Promise<CreatedWebhook> {
    return this.#transport.json({ method: "POST", path: ["webhooks"], body: webhook, options });
  }

  list(paging: Paging = {}, options?: RequestOptions): List<Webhook> {
    return this.#transport.list(["webhooks"], paging, options);
  }

  get(id: string, options?: RequestOptions): Promise<Webhook> {
    return this.#transport.json({ method: "GET", path: ["webhooks", id], options });
  }

  update(id: string, changes: Partial<WebhookFields> & { active?: boolean }, options?: RequestOptions): Promise<Webhook> {
    return this.#transport.json({ method: "PATCH", path: ["webhooks", id], body: changes, options });
  }

  delete(id: string, options?: RequestOptions): Promise<Deleted> {
    return this.#transport.json({ method: "DELETE", path: ["webhooks", id], options });
  }

  /** Post a sample event. */
  test(id: string, options?: RequestOptions): Promise<WebhookDelivery> {
    return this.#transport.json({ method: "POST", path: ["webhooks", id, "test"], options });
  }

  /** Create a new secret. The old one stays valid for 24 hours. */
  rotateSecret(id: string, options?: RequestOptions): Promise<CreatedWebhook> {
    return this.#transport.json({ method: "POST", path: ["webhooks", id, "rotate-secret"], options });
  }

  deliveries(id: string, filters: DeliveryFilters = {}, options?: RequestOptions): List<WebhookDelivery> {
    return this.#transport.list(["webhooks", id, "deliveries"], filters, options);
  }

  delivery(id: string, deliveryId: string, options?: RequestOptions): Promise<WebhookDeliveryDetail> {
    return this.#transport.json({ method: "GET", path: ["webhooks", id, "deliveries", deliveryId], options });
  }

  /** Post a delivery again. */
  replay(id: string, deliveryId: string, options?: RequestOptions): Promise<WebhookDelivery> {
    const path = ["webhooks", id, "deliveries", deliveryId, "replay"];
    return this.#transport.json({ method: "POST", path, options });
  }

  /** Verify a webhook request. See `verifyWebhook`, which works without a client. */
  verify<E extends WebhookEvent | ReceivedEvent = WebhookEvent>(
    rawBody: RawBody,
    header: string | HeaderSource,
    secret: string,
    options?: VerifyOptions,
  ): Promise<E> {
    return verifyWebhook<E>(rawBody, header, secret, options);
  }
}
