import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';
import { call, callForAll, segment } from './api';
import { maxItems, withoutEmpty } from './emails';

export async function createSuppression(context: IExecuteFunctions, index: number): Promise<IDataObject> {
	const body = withoutEmpty({
		email: context.getNodeParameter('email', index) as string,
		stream: context.getNodeParameter('stream', index, '') as string,
	});
	return await call(context, { method: 'POST', path: '/suppressions', body, itemIndex: index });
}

export async function deleteSuppression(context: IExecuteFunctions, index: number): Promise<IDataObject> {
	const id = segment(context.getNodeParameter('suppressionId', index));
	return await call(context, { method: 'DELETE', path: `/suppressions/${id}`, itemIndex: index });
}

export async function getSuppressions(context: IExecuteFunctions, index: number): Promise<IDataObject[]> {
	const query = withoutEmpty(context.getNodeParameter('filters', index, {}) as IDataObject);
	const list = { method: 'GET', path: '/suppressions', query, itemIndex: index } as const;
	return await callForAll(context, list, maxItems(context, index));
}
