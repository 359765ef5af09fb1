import type { INodeType, INodeTypeDescription, IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';
import { NodeConnectionTypes } from 'n8n-workflow';
import { separated } from './emails';
import { titled } from './fields';
import { isDelivery, reject, webhookMethodsOf } from './webhook';

const EVENT_TYPES = [
	'bounced',
	'clicked',
	'complained',
	'deferred',
	'delivered',
	'failed',
	'opened',
	'replied',
	'sent',
	'unsubscribed',
];

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

	webhookMethods = webhookMethodsOf((context) => ({
		events: context.getNodeParameter('events') as string[],
		streams: separated(context.getNodeParameter('streams', '') as string),
	}));

	async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
		if (!isDelivery(this)) return reject(this);
		return { workflowData: [this.helpers.returnJsonArray(this.getBodyData())] };
	}
}
