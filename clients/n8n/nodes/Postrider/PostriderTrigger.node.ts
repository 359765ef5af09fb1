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

const KINDS = [
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

/** What is kept between activations: the webhook that this node has made. */
interface Kept {
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
		description: 'Starts the workflow when something happens to an email',
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
				options: KINDS.map(titled),
				default: [],
				required: true,
			},
		],
	};

	webhookMethods = {
		default: {
			async checkExists(this: IHookFunctions): Promise<boolean> {
				const { webhookId, secret } = keptBy(this);
				if (!webhookId || !secret) return false;
				const found = await unlessGone(call<IDataObject>(this, { method: 'GET', path: `/webhooks/${segment(webhookId)}` }));
				if (found && isWanted(this, found)) return true;
				// Of another URL or other events, or gone: the one that is made next takes its place.
				if (found) await remove(this);
				return false;
			},

			async create(this: IHookFunctions): Promise<boolean> {
				const body = { url: this.getNodeWebhookUrl('default')!, events: this.getNodeParameter('events') as string[] };
				const made = await call<{ id: string; secret: string }>(this, { method: 'POST', path: '/webhooks', body });
				Object.assign(keptBy(this), { webhookId: made.id, secret: made.secret });
				return true;
			},

			async delete(this: IHookFunctions): Promise<boolean> {
				if (keptBy(this).webhookId) await remove(this);
				return true;
			},
		},
	};

	async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
		const { secret } = keptBy(this);
		const { rawBody } = this.getRequestObject();
		const headers = this.getHeaderData();
		const delivery = {
			id: headers['webhook-id'],
			timestamp: headers['webhook-timestamp'],
			signatures: headers['webhook-signature'],
			body: rawBody,
		};
		if (!secret || !rawBody || !isSigned(delivery, secret)) return refuse(this);
		return { workflowData: [this.helpers.returnJsonArray(this.getBodyData())] };
	}
}

function keptBy(context: IHookFunctions | IWebhookFunctions): Kept {
	return context.getWorkflowStaticData('node') as Kept;
}

function isWanted(context: IHookFunctions, webhook: IDataObject): boolean {
	const events = context.getNodeParameter('events') as string[];
	const has = (webhook.events as string[]).map((event) => event.replace(/^email\./, ''));
	const isSame = [...events].sort().join() === has.sort().join();
	return isSame && webhook.active === true && webhook.url === context.getNodeWebhookUrl('default');
}

async function remove(context: IHookFunctions): Promise<void> {
	const kept = keptBy(context);
	await unlessGone(call(context, { method: 'DELETE', path: `/webhooks/${segment(kept.webhookId)}` }));
	delete kept.webhookId;
	delete kept.secret;
}

async function unlessGone<T>(answer: Promise<T>): Promise<T | null> {
	return await answer.catch((error: unknown) => {
		if (error instanceof NodeApiError && error.httpCode === '404') return null;
		throw error;
	});
}

function refuse(context: IWebhookFunctions): IWebhookResponseData {
	context.getResponseObject().status(401).json({ message: 'The signature is wrong, or the delivery is old.' });
	return { noWebhookResponse: true };
}
