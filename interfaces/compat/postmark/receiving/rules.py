"""Postmark's API: inbound rules, which are the blocked senders of the workspace."""

from rest_framework.request import Request
from rest_framework.response import Response

from core.lib.ids import id_number
from interfaces.compat.drafts import validate_field
from interfaces.compat.postmark import requests
from interfaces.compat.postmark.resources import Resource
from interfaces.compat.postmark.views import PostmarkViewSet
from receiving.api.serializers import BlockInput
from receiving.models import SenderBlock
from receiving.services import block_sender, unblock_sender


class PostmarkInboundRuleViewSet(PostmarkViewSet[SenderBlock]):
    queryset = SenderBlock.objects.all()
    id_prefix = "blk_"

    def list(self, request: Request) -> Response:
        rows = self.get_queryset()
        rules = [rule_resource(block) for block in rows[requests.read_slice(request)]]
        return Response({"TotalCount": rows.count(), "InboundRules": rules})

    def create(self, request: Request) -> Response:
        sender = validate_field(BlockInput().fields["sender"], self.body.get("Rule"), name="Rule")
        block, _ = block_sender(self.workspace, sender=sender)
        return Response(rule_resource(block))

    def destroy(self, request: Request, number: str) -> Response:
        block = self.find_number(number)
        unblock_sender(block)
        return Response({"ErrorCode": 0, "Message": f"Rule {block.sender} removed."})


def rule_resource(block: SenderBlock) -> Resource:
    return {"ID": id_number(block.id, prefix="blk_"), "Rule": block.sender}
