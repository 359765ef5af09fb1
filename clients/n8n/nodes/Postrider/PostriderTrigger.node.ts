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
import { separated } from './emails';
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
		icon: { light: 'file:postrider.svg', dark: 'file:postrider.dark.svg' },
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
			{
				displayName: 'Streams',
				name: 'streams',
				type: 'string',
				default: '',
				placeholder: 'newsletter, receipts',
				description: 'IDs of streams, separated by commas. Events of emails in other streams do not start the workflow. All if empty.',
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
				const url = this.getNodeWebhookUrl('default')!;
				const body: IDataObject = { url, events: this.getNodeParameter('events') as string[] };
				const streams = streamsOf(this);
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

function streamsOf(context: IHookFunctions): string[] {
	return separated(context.getNodeParameter('streams', '') as string);
}

function isUpToDate(context: IHookFunctions, webhook: IDataObject): boolean {
	const events = context.getNodeParameter('events') as string[];
	const subscribed = (webhook.events as string[]).map((event) => event.replace(/^email\./, ''));
	const streams = (webhook.streams as string[] | undefined) ?? [];
	const isSame = sorted(events) === sorted(subscribed) && sorted(streamsOf(context)) === sorted(streams);
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

function reject(context: IWebhookFunctions): IWebhookResponseData {
	context.getResponseObject().status(401).json({ message: 'The signature is invalid or the delivery is too old.' });
	return { noWebhookResponse: true };
}
