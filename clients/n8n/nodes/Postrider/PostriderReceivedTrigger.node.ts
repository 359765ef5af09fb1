import type { IDataObject, INodeType, INodeTypeDescription, IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';
import { NodeConnectionTypes } from 'n8n-workflow';
import { isDelivery, reject, webhookMethodsOf } from './webhook';

export class PostriderReceivedTrigger implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Postrider Email Received Trigger',
		name: 'postriderReceivedTrigger',
		icon: { light: 'file:postrider.svg', dark: 'file:postrider.dark.svg' },
		group: ['trigger'],
		version: 1,
		subtitle: '={{ $parameter["recipient"] }}',
		description: 'Starts the workflow when an email is received',
		defaults: { name: 'Email Received' },
		inputs: [],
		outputs: [NodeConnectionTypes.Main],
		credentials: [{ name: 'postriderApi', required: true }],
		webhooks: [{ name: 'default', httpMethod: 'POST', responseMode: 'onReceived', path: 'webhook' }],
		properties: [
			{
				displayName: 'Recipient',
				name: 'recipient',
				type: 'string',
				default: '',
				placeholder: 'support@',
				description: 'Text that the receiving address contains, ignoring case. All addresses if empty.',
			},
			{
				displayName: 'Only Proven Senders',
				name: 'onlyProven',
				type: 'boolean',
				default: false,
				description: 'Whether emails are ignored unless the domain of their sender is proven. Anybody can write any sender.',
			},
			{
				displayName: 'Only Answers',
				name: 'onlyAnswers',
				type: 'boolean',
				default: false,
				description: 'Whether emails are ignored unless they answer an email that was sent with Postrider',
			},
			{
				displayName: 'Ignore Automatic Emails',
				name: 'ignoreAutomatic',
				type: 'boolean',
				default: true,
				description: 'Whether notices of absence, delivery reports and mailing lists are ignored. Answering them can cause loops.',
			},
		],
	};

	webhookMethods = webhookMethodsOf(() => ({ events: ['received'], streams: [] }));

	async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
		if (!isDelivery(this)) return reject(this);
		const email = (this.getBodyData() as { data: IDataObject }).data;
		// Without workflow data, the request is answered and no workflow starts.
		return isWanted(this, email) ? { workflowData: [this.helpers.returnJsonArray(email)] } : {};
	}
}

function isWanted(context: IWebhookFunctions, email: IDataObject): boolean {
	const recipient = (context.getNodeParameter('recipient', '') as string).trim().toLowerCase();
	if (!String(email.recipient).toLowerCase().includes(recipient)) return false;
	if (context.getNodeParameter('onlyProven', false) && (email.authentication as IDataObject | null)?.result !== 'pass') return false;
	if (context.getNodeParameter('onlyAnswers', false) && !email.replyToEmail) return false;
	return !(context.getNodeParameter('ignoreAutomatic', true) && email.automatic !== 'no');
}
