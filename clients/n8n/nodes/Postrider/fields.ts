import type { IDisplayOptions, INodeProperties } from 'n8n-workflow';

function shownFor(resource: string, ...operations: string[]): IDisplayOptions {
	return { show: { resource: [resource], operation: operations } };
}

const ALL_SENDS = ['send', 'sendTemplate', 'sendBatch'];
const WITH_TEMPLATE = ['sendTemplate', 'sendBatch'];

const schedule: INodeProperties = {
	displayName: 'Scheduled For',
	name: 'scheduledFor',
	type: 'dateTime',
	default: '',
	description: 'When to send, at most 30 days ahead. A time without an offset is in the time zone of the workflow.',
};

const replyTo: INodeProperties = { displayName: 'Reply To', name: 'replyTo', type: 'string', default: '' };

const tags: INodeProperties = {
	displayName: 'Tags',
	name: 'tags',
	type: 'string',
	default: '',
	description: 'Separated by commas',
};

const idempotencyKey: INodeProperties = {
	displayName: 'Idempotency Key',
	name: 'idempotencyKey',
	type: 'string',
	default: '',
	description: 'Only one email is accepted per key. By default each item of an execution has a unique key, so that retries never send twice.',
};

const stream: INodeProperties = {
	displayName: 'Stream',
	name: 'stream',
	type: 'string',
	default: '',
	placeholder: 'newsletter',
	description: 'The ID of the stream; by default main, or the only stream of the API key',
};

const sensitive: INodeProperties = {
	displayName: 'Sensitive',
	name: 'sensitive',
	type: 'boolean',
	default: true,
	description: 'Whether nobody can read the content after the email was accepted, and it is removed once it is delivered',
};

const deliverWithin: INodeProperties = {
	displayName: 'Deliver Within (Seconds)',
	name: 'deliverWithin',
	type: 'number',
	typeOptions: { minValue: 30, maxValue: 604800 },
	default: 600,
	description: 'The time after which the email is not sent any more: it fails with the reason expired',
};

const streamFilter: INodeProperties = { displayName: 'Stream', name: 'stream', type: 'string', default: '', placeholder: 'newsletter' };

const otherSubject: INodeProperties = {
	displayName: 'Subject',
	name: 'subject',
	type: 'string',
	default: '',
	description: "Replaces the template's subject and is rendered like it",
};

const emailOptions: INodeProperties[] = [
	{
		displayName: 'Alternatives',
		name: 'alternatives',
		type: 'string',
		default: '',
		placeholder: 'invitation',
		description: 'Names of binary fields that are another form of the email, such as an invitation (.ics), separated by commas',
	},
	{
		displayName: 'Attachments',
		name: 'attachments',
		type: 'string',
		default: '',
		placeholder: 'data',
		description: 'Names of binary fields of the item, separated by commas',
	},
	{ displayName: 'BCC', name: 'bcc', type: 'string', default: '', description: 'Addresses, separated by commas' },
	{ displayName: 'CC', name: 'cc', type: 'string', default: '', description: 'Addresses, separated by commas' },
	deliverWithin,
	{
		displayName: 'Envelope',
		name: 'envelope',
		type: 'string',
		default: '',
		description: 'The addresses of To, CC and BCC that receive the email, separated by commas; all of them if empty. The others are only shown.',
	},
	{ displayName: 'Headers', name: 'headers', type: 'json', default: '{}' },
	idempotencyKey,
	{
		displayName: 'Metadata',
		name: 'metadata',
		type: 'json',
		default: '{}',
		description: 'Custom data, stored with the email and included in webhook events',
	},
	replyTo,
	schedule,
	sensitive,
	stream,
	tags,
	{ displayName: 'Track Clicks', name: 'trackClicks', type: 'boolean', default: true },
	{ displayName: 'Track Opens', name: 'trackOpens', type: 'boolean', default: true },
];

const resource: INodeProperties = {
	displayName: 'Resource',
	name: 'resource',
	type: 'options',
	noDataExpression: true,
	options: [
		{ name: 'Email', value: 'email' },
		{ name: 'Suppression', value: 'suppression' },
	],
	default: 'email',
};

const emailOperation: INodeProperties = {
	displayName: 'Operation',
	name: 'operation',
	type: 'options',
	noDataExpression: true,
	displayOptions: { show: { resource: ['email'] } },
	options: [
		{ name: 'Cancel', value: 'cancel', action: 'Cancel a scheduled email' },
		{ name: 'Get', value: 'get', action: 'Get an email' },
		{ name: 'Get Many', value: 'getAll', action: 'Get many emails' },
		{ name: 'Send', value: 'send', action: 'Send an email' },
		{
			name: 'Send Batch',
			value: 'sendBatch',
			action: 'Send a template to many recipients',
			description: 'Send a template to the recipients of all items, up to 500 per request. Each recipient gets a separate email.',
		},
		{ name: 'Send Template', value: 'sendTemplate', action: 'Send an email from a template' },
	],
	default: 'send',
};

const suppressionOperation: INodeProperties = {
	displayName: 'Operation',
	name: 'operation',
	type: 'options',
	noDataExpression: true,
	displayOptions: { show: { resource: ['suppression'] } },
	options: [
		{ name: 'Create', value: 'create', action: 'Suppress an address' },
		{ name: 'Delete', value: 'delete', action: 'Delete a suppression' },
		{ name: 'Get Many', value: 'getAll', action: 'Get many suppressions' },
	],
	default: 'getAll',
};

const emailFields: INodeProperties[] = [
	{
		displayName: 'From',
		name: 'from',
		type: 'string',
		default: '',
		required: true,
		placeholder: 'Shop <hello@example.com>',
		description: 'The sender. The domain must be registered in the workspace.',
		displayOptions: shownFor('email', ...ALL_SENDS),
	},
	{
		displayName: 'To',
		name: 'to',
		type: 'string',
		default: '',
		required: true,
		placeholder: 'Ada L <ada@example.com>',
		description: 'One address or up to 50, separated by commas; all of them see all addresses. For a batch, the recipient of the item.',
		displayOptions: shownFor('email', ...ALL_SENDS),
	},
	{
		displayName: 'Template Name or ID',
		name: 'templateId',
		type: 'options',
		typeOptions: { loadOptionsMethod: 'getTemplates' },
		default: '',
		required: true,
		description:
			'Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>',
		displayOptions: shownFor('email', ...WITH_TEMPLATE),
	},
	{
		displayName: 'Template Data',
		name: 'templateData',
		type: 'json',
		default: '{}',
		description: "The values of the template's variables",
		displayOptions: shownFor('email', ...WITH_TEMPLATE),
	},
	{
		displayName: 'Subject',
		name: 'subject',
		type: 'string',
		default: '',
		required: true,
		displayOptions: shownFor('email', 'send'),
	},
	{
		displayName: 'HTML',
		name: 'html',
		type: 'string',
		typeOptions: { rows: 5 },
		default: '',
		description: 'An email needs HTML, text or both',
		displayOptions: shownFor('email', 'send'),
	},
	{
		displayName: 'Text',
		name: 'text',
		type: 'string',
		typeOptions: { rows: 5 },
		default: '',
		description: 'Generated from the HTML if empty',
		displayOptions: shownFor('email', 'send'),
	},
	{
		displayName: 'Email ID',
		name: 'emailId',
		type: 'string',
		default: '',
		required: true,
		displayOptions: shownFor('email', 'get', 'cancel'),
	},
	options(emailOptions, 'send'),
	options([...emailOptions, otherSubject], 'sendTemplate'),
	options([deliverWithin, idempotencyKey, replyTo, schedule, sensitive, stream, otherSubject, tags], 'sendBatch'),
];

const suppressionFields: INodeProperties[] = [
	{
		displayName: 'Email',
		name: 'email',
		type: 'string',
		placeholder: 'name@email.com',
		default: '',
		required: true,
		displayOptions: shownFor('suppression', 'create'),
	},
	{
		...stream,
		description: 'The ID of the only stream to block; all of the workspace if empty',
		displayOptions: shownFor('suppression', 'create'),
	},
	{
		displayName: 'Suppression ID',
		name: 'suppressionId',
		type: 'string',
		default: '',
		required: true,
		displayOptions: shownFor('suppression', 'delete'),
	},
];

const listFields: INodeProperties[] = [
	{
		displayName: 'Return All',
		name: 'returnAll',
		type: 'boolean',
		default: false,
		description: 'Whether to return all results or only up to a given limit',
		displayOptions: { show: { operation: ['getAll'] } },
	},
	{
		displayName: 'Limit',
		name: 'limit',
		type: 'number',
		typeOptions: { minValue: 1 },
		default: 50,
		description: 'Max number of results to return',
		displayOptions: { show: { operation: ['getAll'], returnAll: [false] } },
	},
	filters('email', [
		{ displayName: 'Created After', name: 'from', type: 'dateTime', default: '' },
		{ displayName: 'Created Before', name: 'to', type: 'dateTime', default: '' },
		{
			displayName: 'Search',
			name: 'search',
			type: 'string',
			default: '',
			description: 'Text contained in a recipient or the subject',
		},
		{
			displayName: 'Status',
			name: 'status',
			type: 'multiOptions',
			options: ['bounced', 'cancelled', 'clicked', 'delivered', 'failed', 'opened', 'queued', 'scheduled', 'sent'].map(
				titled,
			),
			default: [],
		},
		streamFilter,
		{ displayName: 'Tag', name: 'tag', type: 'string', default: '' },
	]),
	filters('suppression', [
		{
			displayName: 'Reason',
			name: 'reason',
			type: 'options',
			options: ['bounce', 'complaint', 'manual', 'unsubscribe'].map(titled),
			default: 'bounce',
		},
		{ displayName: 'Search', name: 'search', type: 'string', default: '' },
		streamFilter,
	]),
];

export const properties: INodeProperties[] = [
	resource,
	emailOperation,
	suppressionOperation,
	...emailFields,
	...suppressionFields,
	...listFields,
];

export function titled(value: string): { name: string; value: string } {
	return { name: value.charAt(0).toUpperCase() + value.slice(1), value };
}

function options(fields: INodeProperties[], operation: string): INodeProperties {
	const sorted = [...fields].sort((a, b) => a.displayName.localeCompare(b.displayName));
	return {
		displayName: 'Options',
		name: 'options',
		type: 'collection',
		placeholder: 'Add option',
		default: {},
		options: sorted,
		displayOptions: shownFor('email', operation),
	};
}

function filters(resource: string, fields: INodeProperties[]): INodeProperties {
	return {
		displayName: 'Filters',
		name: 'filters',
		type: 'collection',
		placeholder: 'Add filter',
		default: {},
		options: fields,
		displayOptions: shownFor(resource, 'getAll'),
	};
}
