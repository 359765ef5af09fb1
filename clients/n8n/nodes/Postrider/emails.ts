import { createHash } from 'node:crypto';
import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';
import { call, callForAll, segment } from './api';
import { toUtc } from './times';

const BATCH_SIZE = 500;

export async function sendEmail(context: IExecuteFunctions, index: number): Promise<IDataObject> {
	const body: IDataObject = {
		...(await emailBody(context, index)),
		subject: context.getNodeParameter('subject', index) as string,
		...withoutEmpty({
			html: context.getNodeParameter('html', index, '') as string,
			text: context.getNodeParameter('text', index, '') as string,
		}),
	};
	return await send(context, index, body);
}

export async function sendTemplate(context: IExecuteFunctions, index: number): Promise<IDataObject> {
	const body: IDataObject = {
		...(await emailBody(context, index)),
		templateId: context.getNodeParameter('templateId', index) as string,
		templateData: json(context.getNodeParameter('templateData', index, '{}')),
	};
	return await send(context, index, body);
}

/** Send one template to the recipients of all items, up to 500 per request; return a result for each item. */
export async function sendBatch(context: IExecuteFunctions): Promise<IDataObject[]> {
	const recipients = context.getInputData().map((_, index) => ({
		to: context.getNodeParameter('to', index) as string,
		templateData: json(context.getNodeParameter('templateData', index, '{}')),
	}));
	const results: IDataObject[] = [];
	for (let start = 0; start < recipients.length; start += BATCH_SIZE) {
		results.push(...(await sendPart(context, start, recipients.slice(start, start + BATCH_SIZE))));
	}
	return results;
}

export async function getEmail(context: IExecuteFunctions, index: number): Promise<IDataObject> {
	const id = segment(context.getNodeParameter('emailId', index));
	return await call(context, { method: 'GET', path: `/emails/${id}`, itemIndex: index });
}

export async function cancelEmail(context: IExecuteFunctions, index: number): Promise<IDataObject> {
	const id = segment(context.getNodeParameter('emailId', index));
	return await call(context, { method: 'DELETE', path: `/emails/${id}`, itemIndex: index });
}

export async function getEmails(context: IExecuteFunctions, index: number): Promise<IDataObject[]> {
	const filters = context.getNodeParameter('filters', index, {}) as IDataObject;
	const query = withoutEmpty({
		...filters,
		status: ((filters.status as string[]) ?? []).join(','),
		from: scheduledTime(context, filters.from),
		to: scheduledTime(context, filters.to),
	});
	return await callForAll(context, { method: 'GET', path: '/emails', query, itemIndex: index }, maxItems(context, index));
}

/** Return the maximum number of items that the node requests. */
export function maxItems(context: IExecuteFunctions, index: number): number {
	const isAll = context.getNodeParameter('returnAll', index) as boolean;
	return isAll ? Number.MAX_SAFE_INTEGER : (context.getNodeParameter('limit', index) as number);
}

/** Return the fields without empty form values. */
export function withoutEmpty(fields: IDataObject): IDataObject {
	return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== ''));
}

async function send(context: IExecuteFunctions, index: number, body: IDataObject): Promise<IDataObject> {
	const { idempotencyKey } = context.getNodeParameter('options', index, {}) as IDataObject;
	return await call(context, {
		method: 'POST',
		path: '/emails/send',
		body,
		idempotencyKey: (idempotencyKey as string) || keyOf(context, index),
		itemIndex: index,
	});
}

async function sendPart(context: IExecuteFunctions, start: number, recipients: IDataObject[]): Promise<IDataObject[]> {
	const options = context.getNodeParameter('options', 0, {}) as IDataObject;
	const response = await call<{ emails: IDataObject[]; rejected: IDataObject[] }>(context, {
		method: 'POST',
		path: '/emails/batch',
		body: {
			from: context.getNodeParameter('from', 0) as string,
			templateId: context.getNodeParameter('templateId', 0) as string,
			recipients,
			...withoutEmpty({
				subject: options.subject,
				replyTo: options.replyTo,
				scheduledFor: scheduledTime(context, options.scheduledFor),
				sensitive: options.sensitive,
				deliverWithin: options.deliverWithin,
				stream: options.stream,
			}),
			...listed({ tags: options.tags }),
		},
		idempotencyKey: options.idempotencyKey ? `${options.idempotencyKey}-${start}` : keyOf(context, start),
	});
	const results: IDataObject[] = recipients.map(({ to }) => ({ to }));
	for (const { index, id } of response.emails) results[index as number] = { ...results[index as number], id, accepted: true };
	for (const { index, code } of response.rejected) {
		results[index as number] = { ...results[index as number], id: null, accepted: false, code };
	}
	return results;
}

/** Return the fields common to emails with and without a template. */
async function emailBody(context: IExecuteFunctions, index: number): Promise<IDataObject> {
	const options = context.getNodeParameter('options', index, {}) as IDataObject;
	return {
		from: context.getNodeParameter('from', index) as string,
		...addressed({ to: context.getNodeParameter('to', index), envelope: options.envelope }),
		...withoutEmpty({
			subject: options.subject,
			replyTo: options.replyTo,
			scheduledFor: scheduledTime(context, options.scheduledFor),
			sensitive: options.sensitive,
			deliverWithin: options.deliverWithin,
			stream: options.stream,
			trackOpens: options.trackOpens,
			trackClicks: options.trackClicks,
		}),
		...listed({ cc: options.cc, bcc: options.bcc, tags: options.tags }),
		...(options.metadata ? { metadata: json(options.metadata) } : {}),
		...(options.headers ? { headers: json(options.headers) } : {}),
		...(await attached(context, index, options)),
	};
}

async function attached(context: IExecuteFunctions, index: number, options: IDataObject): Promise<IDataObject> {
	const attachments = await files(context, index, options.attachments);
	for (const file of await files(context, index, options.alternatives)) attachments.push({ ...file, alternative: true });
	return attachments.length ? { attachments } : {};
}

async function files(context: IExecuteFunctions, index: number, names: unknown): Promise<IDataObject[]> {
	return await Promise.all(
		separated((names as string) ?? '').map(async (name) => {
			const { fileName, mimeType } = context.helpers.assertBinaryData(index, name);
			const content = (await context.helpers.getBinaryDataBuffer(index, name)).toString('base64');
			return { filename: fileName ?? name, content, contentType: mimeType };
		}),
	);
}

/**
 * Return an idempotency key for this item and run, stable when n8n retries it.
 *
 * Every n8n instance numbers executions from 1, so the instance id is part of the key.
 */
function keyOf(context: IExecuteFunctions, index: number): string {
	const run = context.getWorkflowDataProxy(index).$runIndex as number;
	const parts = [context.getInstanceId(), context.getExecutionId(), context.getNode().id, run, index];
	return `n8n-${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;
}

function scheduledTime(context: IExecuteFunctions, text: unknown): string | undefined {
	return text ? toUtc(context.getTimezone(), String(text)) : undefined;
}

function listed(fields: IDataObject): IDataObject {
	const lists = Object.entries(fields).map(([name, text]) => [name, separated((text as string) ?? '')] as const);
	return Object.fromEntries(lists.filter(([, list]) => list.length > 0));
}

/** Split a text at commas. */
export function separated(text: string): string[] {
	return text
		.split(',')
		.map((part) => part.trim())
		.filter(Boolean);
}

/**
 * Return lists of addresses, without empty ones: the service refuses an email without `to`.
 *
 * Texts are split at commas, except in a quoted name such as "Hopper, Grace" <grace@example.com>.
 */
function addressed(fields: IDataObject): IDataObject {
	const lists = Object.entries(fields).map(([name, text]) => {
		const parts = ((text as string) ?? '').match(/(?:"(?:[^"\\]|\\.)*"|[^,"])+/g) ?? [];
		return [name, parts.map((one) => one.trim()).filter(Boolean)] as const;
	});
	return Object.fromEntries(lists.filter(([, list]) => list.length > 0));
}

function json(value: unknown): IDataObject {
	return (typeof value === 'string' ? JSON.parse(value || '{}') : value) as IDataObject;
}
