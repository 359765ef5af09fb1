import type {
	IDataObject,
	IHookFunctions,
	INodeType,
	INodeTypeDescription,
	IWebhookFunctions,
	IWebhookResponseData,
} from 'n8n-workflow';
import { NodeApiError, NodeConnectionTypes } from 'n8n-workflow';
import { call, segment } from './api';
import { titled } from './fields';
import { isSigned } from './signature';

const EVENT_TYPES = [
	'bounced',
	'clicked',
	'complained',
	'deferred',
	'delivered',
	'failed',
	'opened',
	'sent',
	'unsubscribed',
];

/** The webhook of this node, stored between activations. */
interface StoredWebhook {
	webhookId?: string;
	secret?: string;
}

export class PostriderTrigger implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Postrider Trigger',
		name: 'postriderTrigger',
		icon: 'file:postrider.svg',
		group: ['trigger'],
		version: 1,
		subtitle: '={{ $parameter["events"].join(", ") }}',
		description: 'Starts the workflow on email events',
		defaults: { name: 'Postrider Trigger' },
		inputs: [],
		outputs: [NodeConnectionTypes.Main],
		credentials: [{ name: 'postriderApi', required: true }],
		webhooks: [{ name: 'default', httpMethod: 'POST', responseMode: 'onReceived', path: 'webhook' }],
		properties: [
			{
				displayName: 'Events',
				name: 'events',
				type: 'multiOptions',
				options: EVENT_TYPES.map(titled),
				default: [],
				required: true,
			},
		],
	};

	webhookMethods = {
		default: {
			async checkExists(this: IHookFunctions): Promise<boolean> {
				const { webhookId, secret } = storedBy(this);
				if (!webhookId || !secret) return false;
				const found = await orNullIfGone(call<IDataObject>(this, { method: 'GET', path: `/webhooks/${segment(webhookId)}` }));
				if (found && isUpToDate(this, found)) return true;
				// A webhook with another URL or other events is replaced.
				if (found) await remove(this);
				return false;
			},

			async create(this: IHookFunctions): Promise<boolean> {
				const body = { url: this.getNodeWebhookUrl('default')!, events: this.getNodeParameter('events') as string[] };
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

	async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
		const { secret } = storedBy(this);
		const { rawBody } = this.getRequestObject();
		const headers = this.getHeaderData();
		const delivery = {
			id: headers['webhook-id'],
			timestamp: headers['webhook-timestamp'],
			signatures: headers['webhook-signature'],
			body: rawBody,
		};
		if (!secret || !rawBody || !isSigned(delivery, secret)) return reject(this);
		return { workflowData: [this.helpers.returnJsonArray(this.getBodyData())] };
	}
}

function storedBy(context: IHookFunctions | IWebhookFunctions): StoredWebhook {
	return context.getWorkflowStaticData('node') as StoredWebhook;
}

function isUpToDate(context: IHookFunctions, webhook: IDataObject): boolean {
	const events = context.getNodeParameter('events') as string[];
	const subscribed = (webhook.events as string[]).map((event) => event.replace(/^email\./, ''));
	const isSame = [...events].sort().join() === subscribed.sort().join();
	return isSame && webhook.active === true && webhook.url === context.getNodeWebhookUrl('default');
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

function reject(context: IWebhookFunctions): IWebhookResponseData {
	context.getResponseObject().status(401).json({ message: 'The signature is invalid or the delivery is too old.' });
	return { noWebhookResponse: true };
}
