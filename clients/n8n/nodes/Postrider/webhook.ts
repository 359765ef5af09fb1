import type { IDataObject, IHookFunctions, IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';
import { NodeApiError } from 'n8n-workflow';
import { call, segment } from './api';
import { isSigned } from './signature';

/** The webhook of a node, stored between activations. */
interface StoredWebhook {
	webhookId?: string;
	secret?: string;
}

/** The events and streams that a node subscribes to; no streams: all of them. */
interface Subscription {
	events: string[];
	streams: string[];
}

/** The methods of a trigger node that creates its webhook when the workflow is activated and deletes it at the end. */
export function webhookMethodsOf(subscriptionOf: (context: IHookFunctions) => Subscription) {
	return {
		default: {
			async checkExists(this: IHookFunctions): Promise<boolean> {
				const { webhookId, secret } = storedBy(this);
				if (!webhookId || !secret) return false;
				const found = await orNullIfGone(call<IDataObject>(this, { method: 'GET', path: `/webhooks/${segment(webhookId)}` }));
				if (found && isUpToDate(this, subscriptionOf(this), found)) return true;
				// A webhook with another URL or other events is replaced.
				if (found) await remove(this);
				return false;
			},

			async create(this: IHookFunctions): Promise<boolean> {
				const { events, streams } = subscriptionOf(this);
				const body: IDataObject = { url: this.getNodeWebhookUrl('default')!, events };
				if (streams.length > 0) body.streams = streams;
				const created = await call<{ id: string; secret: string }>(this, { method: 'POST', path: '/webhooks', body });
				Object.assign(storedBy(this), { webhookId: created.id, secret: created.secret });
				return true;
			},

			async delete(this: IHookFunctions): Promise<boolean> {
				if (storedBy(this).webhookId) await remove(this);
				return true;
			},
		},
	};
}

/** Whether the request has a valid signature of the node's webhook. */
export function isDelivery(context: IWebhookFunctions): boolean {
	const { secret } = storedBy(context);
	const { rawBody } = context.getRequestObject();
	const headers = context.getHeaderData();
	const delivery = {
		id: headers['webhook-id'],
		timestamp: headers['webhook-timestamp'],
		signatures: headers['webhook-signature'],
		body: rawBody,
	};
	return Boolean(secret && rawBody && isSigned(delivery, secret));
}

export function reject(context: IWebhookFunctions): IWebhookResponseData {
	context.getResponseObject().status(401).json({ message: 'The signature is invalid or the delivery is too old.' });
	return { noWebhookResponse: true };
}

function storedBy(context: IHookFunctions | IWebhookFunctions): StoredWebhook {
	return context.getWorkflowStaticData('node') as StoredWebhook;
}

function isUpToDate(context: IHookFunctions, { events, streams }: Subscription, webhook: IDataObject): boolean {
	const subscribed = (webhook.events as string[]).map((event) => event.replace(/^email\./, ''));
	const isSame = sorted(events) === sorted(subscribed) && sorted(streams) === sorted((webhook.streams as string[]) ?? []);
	return isSame && webhook.active === true && webhook.url === context.getNodeWebhookUrl('default');
}

function sorted(names: string[]): string {
	return [...names].sort().join();
}

async function remove(context: IHookFunctions): Promise<void> {
	const stored = storedBy(context);
	await orNullIfGone(call(context, { method: 'DELETE', path: `/webhooks/${segment(stored.webhookId)}` }));
	delete stored.webhookId;
	delete stored.secret;
}

async function orNullIfGone<T>(response: Promise<T>): Promise<T | null> {
	return await response.catch((error: unknown) => {
		if (error instanceof NodeApiError && error.httpCode === '404') return null;
		throw error;
	});
}
