import type {
	IDataObject,
	IExecuteFunctions,
	ILoadOptionsFunctions,
	INodeExecutionData,
	INodePropertyOptions,
	INodeType,
	INodeTypeDescription,
} from 'n8n-workflow';
import { NodeConnectionTypes, NodeOperationError } from 'n8n-workflow';
import { callForAll } from './api';
import { cancelEmail, getEmail, getEmails, sendBatch, sendEmail, sendTemplate } from './emails';
import { properties } from './fields';
import { createSuppression, deleteSuppression, getSuppressions } from './suppressions';

type Operation = (context: IExecuteFunctions, index: number) => Promise<IDataObject | IDataObject[]>;

const OPERATIONS: Record<string, Operation> = {
	'email.send': sendEmail,
	'email.sendTemplate': sendTemplate,
	'email.get': getEmail,
	'email.getAll': getEmails,
	'email.cancel': cancelEmail,
	'suppression.create': createSuppression,
	'suppression.delete': deleteSuppression,
	'suppression.getAll': getSuppressions,
};

export class Postrider implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Postrider',
		name: 'postrider',
		icon: { light: 'file:postrider.svg', dark: 'file:postrider.dark.svg' },
		group: ['output'],
		version: 1,
		subtitle: '={{ $parameter["operation"] + ": " + $parameter["resource"] }}',
		description: 'Send and manage emails',
		defaults: { name: 'Postrider' },
		usableAsTool: true,
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		credentials: [{ name: 'postriderApi', required: true }],
		properties,
	};

	methods = {
		loadOptions: {
			async getTemplates(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
				const templates = await callForAll(this, { method: 'GET', path: '/templates' }, 1_000);
				return templates.map(({ id, name, subject }) => ({
					name: name as string,
					value: id as string,
					description: subject as string,
				}));
			},
		},
	};

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const name = `${this.getNodeParameter('resource', 0)}.${this.getNodeParameter('operation', 0)}`;
		return [name === 'email.sendBatch' ? await runOnce(this) : await runForEach(this, OPERATIONS[name]!)];
	}
}

/** Run the operation for every item. If the node continues on failure, the error is the result of the item. */
async function runForEach(context: IExecuteFunctions, operation: Operation): Promise<INodeExecutionData[]> {
	const results: INodeExecutionData[] = [];
	for (let index = 0; index < context.getInputData().length; index++) {
		try {
			const result = await operation(context, index);
			for (const json of [result].flat()) results.push({ json, pairedItem: { item: index } });
		} catch (error) {
			if (!context.continueOnFail()) throw nodeError(context, error, index);
			results.push({ json: { error: (error as Error).message }, pairedItem: { item: index } });
		}
	}
	return results;
}

async function runOnce(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	try {
		const results = await sendBatch(context);
		return results.map((json, item) => ({ json, pairedItem: { item } }));
	} catch (error) {
		if (!context.continueOnFail()) throw nodeError(context, error, 0);
		return context.getInputData().map((_, item) => ({ json: { error: (error as Error).message }, pairedItem: { item } }));
	}
}

/** Add the node to errors without one, such as a malformed JSON field or an empty id. */
function nodeError(context: IExecuteFunctions, error: unknown, itemIndex: number): Error {
	if (error instanceof Error && 'node' in error) return error;
	return new NodeOperationError(context.getNode(), error as Error, { itemIndex });
}
